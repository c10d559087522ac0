//! The benchmark: servers under test, load generator, subjects, results and report.
#![forbid(unsafe_code)]

pub mod load;
pub mod options;
pub mod plot;
pub mod process;
pub mod report;
pub mod results;
pub mod server;
pub mod subject;
pub mod table;
