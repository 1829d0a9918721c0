//! A suite beside itself on databases prepared in several ways.
