mod host_process;
mod slow_notices;
mod stats;
