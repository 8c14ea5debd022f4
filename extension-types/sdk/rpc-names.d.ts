// The lines of the RPC protocol by the original's names; rpc.d.ts has all of them in detail.
import type { Event, RpcCommand as Commands, RpcResponse as Responses } from "../rpc.js";

type WithId<T> = T & { id?: string };

export type { SessionState as RpcSessionState } from "../rpc.js";
export type RpcCommand = WithId<Exclude<Commands, { type: "extension_ui_response" | "permission_response" }>>;
export type RpcResponse = WithId<Responses>;
export type RpcExtensionUIRequest = Extract<Event, { type: "extension_ui_request" }>;
export type RpcExtensionUIResponse =
  & { type: "extension_ui_response"; id: string }
  & ({ value: string } | { confirmed: boolean } | { cancelled: true });

// Without this line every declaration would be exported.
export {};
