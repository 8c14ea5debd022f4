// Schemas of tool parameters, from `typebox`, or from `@sinclair/typebox`, its name before 1.0. An
// author has one of them or both.
// @ts-ignore: may be absent
import type * as Old from "@sinclair/typebox";
// @ts-ignore: may be absent
import type * as New from "typebox";

/** A type from a package that is not installed is `any`. */
type Absent<T> = [0] extends [1 & T] ? true : false;
export type Has<T, Else> = Absent<T> extends true ? Else : T;

/** The constraint of tools. It is wide, because only the package that made a schema knows its type. */
export type AnySchema = object;
/** Drops the index signature of the old schemas, which the new package would take for every member. */
type Named<T> = { [K in keyof T as string extends K ? never : number extends K ? never : K]: T[K] };
/** A schema that pi makes, in the form of either package. */
export type SchemaOf<T> = { static: T } & Named<Has<Old.TUnsafe<T>, unknown>> & Has<New.TUnsafe<T>, unknown>;

export type TSchema = Has<Old.TSchema, Has<New.TSchema, object>>;
/** The type of the values that fit a schema. */
export type Static<T extends AnySchema> = Absent<Old.TSchema> extends true ? New.Static<T>
  : T extends { static: unknown } ? T["static"]
  : Has<New.Static<T>, unknown>;
export const Type: Has<typeof Old.Type, typeof New.Type>;

// Without this line every declaration would be exported.
export {};
