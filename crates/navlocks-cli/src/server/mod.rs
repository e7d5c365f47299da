//! The service: lock spaces behind sockets.
