//! The engine, beside the naive model and row by row of the requirements.

mod arbitrary;
mod histories;
mod shards;
mod replay;

mod support;
mod rows_f_names;
mod rows_f_scheduling;
mod rows_f_if_available;
mod rows_f_signal;
mod rows_f_steal;
mod rows_f_query;
mod rows_f_lifecycle;
mod rows_f_usage;
mod rows_g;
mod rows_p;
mod rows_q;
mod rows_t;
mod rows_x;
mod rows_x20;
mod rows_s;
mod decisions;
mod tokens;
mod families;
mod fast_path;
mod kit;
