mod fleet;
mod programs;
mod rpc_clients;
