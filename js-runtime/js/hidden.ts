// What is for Deno's own code: `Deno[Deno.internal]` leads to operations that end the
// process, and past everything that is checked on the way to them. Node has none of it.
// deno-lint-ignore-file

/** Called once, before anything of anybody else runs. */
export function hideInternals(): void {
  const { Deno } = globalThis as any;
  delete Deno[Deno.internal];
  delete Deno.internal;
}
