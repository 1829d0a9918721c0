//! Where SQL comes from: a file, plain or compressed, or an archive that pg_restore reads.
