//! Black-box tests: the real binary, driven through its real front doors,
//! against a scripted model on loopback. One binary for all of them, because
//! cargo links V8 into each.
//!
//! `support` is the vocabulary; a test should read like the story it tells.

mod aborts;
mod cli;
mod compaction;
mod compaction_extensions;
mod compaction_reference;
mod component_parity;
mod components;
mod conformance;
mod conversation;
mod doctor;
mod endings;
mod error_places;
mod event_order;
mod examples;
mod export;
mod export_page;
mod ext_command;
mod extension_api_events;
mod extension_api_examples;
mod extension_api_sdk;
mod extension_api_tools;
mod extension_reload;
mod extension_slips;
mod extension_stats;
mod extension_types;
mod extensions;
mod fleet;
mod host_process;
mod hostile;
mod hostile_attacks;
mod inspect;
mod javascript;
mod json_mode;
mod line_mode;
mod node_layer;
mod packages;
mod pi_test;
mod providers_examples;
mod providers_registry;
mod providers_streaming;
mod providers_wire;
mod resources;
mod rpc_ages;
mod rpc_clients;
mod rpc_commands;
mod rpc_examples;
mod rpc_protocol;
mod rpc_robust;
mod search_tools;
mod session_choice;
mod session_manager;
mod session_tree;
mod sessions;
mod sessions_kill;
mod sessions_shared;
mod support;
mod themes;
mod tool_ends;
mod tool_parity;
mod tools_offered;
mod tree;
