//! End-to-end tests of the program. They are one binary, because every separate one would link polars again.

mod acceptance;
mod allocations;
mod architecture;
mod archive_members;
mod archived_hostile;
mod archived_traces;
mod bounded_memory;
mod call_stacks;
mod cancelled;
#[cfg(unix)]
mod cancelled_outputs;
mod caveats;
mod changed;
mod completed;
mod configuration;
mod copied_buffers;
#[cfg(unix)]
mod cut_while_read;
mod damage;
mod dataset;
mod described;
mod diff;
#[cfg(unix)]
mod documented;
mod dumps;
#[cfg(unix)]
mod editing;
mod etwanalyzer_document;
mod etwanalyzer_hostile;
mod etwanalyzer_import;
mod etwanalyzer_members;
mod etwanalyzer_round_trip;
mod event_metadata;
mod events;
#[cfg(unix)]
mod every_screen;
mod expansion;
mod export;
#[cfg(unix)]
mod extraction_threads;
mod failing_places;
#[cfg(target_os = "linux")]
mod fleet;
mod formats;
mod fuzz_bodies;
mod gate;
mod golden;
mod groups;
mod gui_handles;
mod handle_model;
mod handle_owners;
#[cfg(unix)]
mod hostile_files;
mod hostile_text;
mod hostile_values;
mod htrace;
#[cfg(unix)]
mod interrupts;
mod joined_stacks;
mod json_members;
mod kernel_stays;
mod known_leaks;
mod lifecycle;
mod lists;
mod live;
mod live_view;
mod loading;
mod losses;
mod lost_buffers;
mod managed;
mod many_allocations;
mod mcp;
mod mcp_limits;
mod no_match;
mod object_shards;
mod output;
mod overwriting;
mod parquet_readers;
mod pictures;
mod pprof;
mod process_exit;
mod processes;
#[cfg(unix)]
mod programs;
mod queries_in_lines;
mod real_dumps;
mod real_traces;
mod recording;
mod redact;
mod report;
mod report_allocations;
mod resource_stacks;
mod resources;
mod resources_between;
mod resources_compared;
mod rings;
mod robustness;
#[cfg(unix)]
mod screen;
mod sessions;
mod several_files;
mod several_processes;
#[cfg(unix)]
mod shell_help;
mod sql;
mod sql_queries;
mod stale;
mod stats;
mod symbol_servers;
mod symbolize;
mod symbols;
mod symbols_beside;
mod synthetic;
#[cfg(unix)]
mod targets;
mod terminal;
mod threads;
mod totals;
mod unknown_code;
mod versions;
mod views;
mod volumes;
mod ways_in;
mod why;
mod why_commands;
mod windows_handles;
mod windows_memory;
mod zombies;
