//! The texts of the command, and the files that are packaged with it.

mod help;
mod pages;
mod production;
mod rules;
mod install;
