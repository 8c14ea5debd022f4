//! Names of packages. They become folders, so a name from outside must not lead anywhere else.

use crate::error::NpmError;

/// Returns whether the text is `name` or `@scope/name` and each part is a plain file name.
pub(crate) fn is_package_name(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let plain = |part: &str| {
        !part.is_empty()
            && part.len() <= 214
            && !part.starts_with(['.', '-'])
            && !part.ends_with(['.', ' '])
            && part != "node_modules"
            && !part.contains(|c: char| c.is_control() || r#"\:*?"<>|"#.contains(c))
    };
    match parts.as_slice() {
        [name] => plain(name) && !name.starts_with('@'),
        [scope, name] => scope.strip_prefix('@').is_some_and(plain) && plain(name),
        _ => false,
    }
}

/// Checks a name under which a package is installed.
pub(crate) fn checked(name: &str, parent: &str) -> Result<(), NpmError> {
    match is_package_name(name) {
        true => Ok(()),
        false => Err(NpmError::InvalidName(format!(
            "{parent} names a dependency {name:?}, which is no name of a package"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_folders() {
        for good in ["a", "@s/a", "lodash.merge", "JSONStream", "a_b~c"] {
            assert!(is_package_name(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "@s",
            "@s/",
            "@/x",
            "@s/../x",
            "a\\b",
            ".bin",
            "a\0",
            "node_modules",
            "@../x",
            "C:x",
            "-g",
        ] {
            assert!(!is_package_name(bad), "{bad}");
        }
    }
}
