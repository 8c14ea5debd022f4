mod in_place_changes;
mod newer_versions;
mod order;
mod provider_requests;
mod turn_end;
