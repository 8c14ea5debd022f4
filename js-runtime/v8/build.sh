#!/bin/bash
# Builds the static library that the crate `v8` (see VERSION) links against, for x86_64-unknown-linux-gnu, from the source in the crate itself.
# Needs root (it makes a Debian sid chroot for clang 23), crates.io and Debian's packages; about 2 h on 2 cores. No other network.
# usage: build.sh WORKDIR   ->   WORKDIR/librusty_v8_simdutf_release_x86_64-unknown-linux-gnu.a.gz
set -euo pipefail
work=$(realpath -m "${1:?usage: build.sh WORKDIR}"); version=$(cat "$(dirname "$0")/VERSION"); icu=0.77.0; root=$work/sid
mkdir -p "$work"; cd "$work"

# 1. sources: the crate, and ICU's data, which the crate leaves out
fetch() { [ -d "$1-$2" ] || { cargo init -q --name fetch "$work/fetch" 2>/dev/null || true; (cd "$work/fetch" && cargo add -q "$1@=$2" && cargo fetch -q); cp -r "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1-$2" "$work/"; rm -rf "$work/fetch"; }; }
fetch v8 $version; fetch deno_core_icudata $icu

# 2. a compiler new enough for V8's libc++ (clang 23), gn and ninja
command -v debootstrap >/dev/null || apt-get install -y -q debootstrap
[ -d "$root/usr" ] || debootstrap --variant=minbase --include=ca-certificates sid "$root" "$(sed -n 's/^URIs: //p' /etc/apt/sources.list.d/debian.sources | head -n 1)"
mountpoint -q "$root/proc" || mount --bind /proc "$root/proc"; mountpoint -q "$root/dev" || mount --bind /dev "$root/dev"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
chroot "$root" sh -c 'apt-get -o Acquire::Check-Valid-Until=false update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends clang-23 lld-23 llvm-23 libclang-rt-23-dev generate-ninja ninja-build python3'
rt=$root/usr/lib/llvm-23/lib/clang/23/lib; mkdir -p "$rt/x86_64-unknown-linux-gnu"; ln -sf ../linux/libclang_rt.builtins-x86_64.a "$rt/x86_64-unknown-linux-gnu/libclang_rt.builtins.a"

# 3. an old C library to compile against, so that the result links on Debian 12 and newer
mkdir -p "$root/sysroot" debs; (cd debs && apt-get download -q libc6-dev libc6 libgcc-12-dev libgcc-s1 linux-libc-dev libcrypt-dev && for d in *.deb; do dpkg -x "$d" "$root/sysroot"; done)
rm -rf "$root/sysroot/lib64"; ln -s lib/x86_64-linux-gnu "$root/sysroot/lib64"

# 4. V8: as the crate's build script does it, without Rust inside V8 (its sources are not in the crate, so `Temporal` is off)
mkdir -p "$root/build"; [ -d "$root/build/v8" ] || cp -r "v8-$version" "$root/build/v8"
mkdir -p "$root/build/v8/third_party/icu/common"; cp "deno_core_icudata-$icu/src/icudtl.dat" "$root/build/v8/third_party/icu/common/"
chroot "$root" gn --root=/build/v8 --script-executable=python3 gen /build/out --args='
  is_debug=false symbol_level=0 line_tables_only=false use_custom_libcxx=true rusty_v8_enable_simdutf=true
  v8_enable_sandbox=false v8_enable_pointer_compression=false v8_enable_v8_checks=false v8_monolithic_for_shared_library=true
  enable_rust=false enable_rust_cxx=false v8_enable_temporal_support=false
  clang_base_path="/usr/lib/llvm-23" clang_version="23" use_lld=true treat_warnings_as_errors=false use_glib=false sysroot="/sysroot"'
chroot "$root" ninja -C /build/out rusty_v8
gzip -9 -n -c "$root/build/out/obj/librusty_v8.a" > "$work/librusty_v8_simdutf_release_x86_64-unknown-linux-gnu.a.gz"
sha256sum "$work"/*.a.gz
