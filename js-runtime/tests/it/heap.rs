//! Attribution of V8's heap.

use std::time::Duration;

use crate::support::{Folder, Js, handlers, options};

/// Time for a snapshot in a debug build on a busy machine.
const LONG: Duration = Duration::from_secs(300);

#[tokio::test]
async fn retained_heap_is_attributed() {
    let folder = Folder::new(&[
        ("small.ts", &handlers(&[("small", "() => 1")])),
        (
            "large.ts",
            &format!(
                "const kept = Array.from({{ length: 100_000 }}, (_, at) => ({{ at }}));\n{}",
                handlers(&[("large", "() => kept.length")])
            ),
        ),
        // Only a pending promise refers to the object.
        (
            "waits.ts",
            "export default async (pi: any) => {
                void (async () => {
                    const kept = Array.from({ length: 50_000 }, (_, at) => ({ at }));
                    await new Promise((resolve) => setTimeout(resolve, 600_000));
                    console.log(kept.length);
                })();
            };",
        ),
        // The second importer has a module of its own.
        (
            "lib.ts",
            "export const all = Array.from({ length: 20_000 }, (_, at) => ({ at }));",
        ),
        (
            "one.ts",
            "import { all } from './lib.ts'; export default (pi: any) => { pi.on('one', () => all); };",
        ),
        (
            "two.ts",
            "import { all } from './lib.ts'; export default (pi: any) => { pi.on('two', () => all); };",
        ),
        // Objects of a global have no owner.
        (
            "global.ts",
            "globalThis.kept = Array.from({ length: 100_000 }, (_, at) => ({ at })); export default () => {};",
        ),
    ]);
    let mut options = options();
    options.spin_limit = Duration::from_secs(1);
    let js = Js::with(options);
    let names = ["small", "large", "waits", "one", "two", "global"];
    for (id, name) in (0..).zip(names) {
        js.load(id, &folder.path(&format!("{name}.ts")))
            .await
            .unwrap();
    }
    let owners = js.runtime.retained_heap(LONG).await.unwrap().unwrap();
    // The snapshot takes longer than an extension may.
    assert_eq!(js.runtime.stopped(), None);
    let of = |name: &str| {
        let id = names.iter().position(|it| *it == name).unwrap();
        owners
            .by_extension
            .get(&(id as u32))
            .copied()
            .unwrap_or_default()
    };
    // An object with one number is 32 bytes, and its element in the array another 8.
    let small = 64 << 10;
    for (name, expected) in [
        ("small", 1..small),
        ("large", 3_500_000..4_500_000),
        ("waits", 1_700_000..2_300_000),
        ("one", 700_000..900_000),
        ("two", 700_000..900_000),
        ("global", 0..small),
    ] {
        assert!(expected.contains(&of(name)), "{name}: {owners:?}");
    }
}
