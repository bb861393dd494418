// Package gnark connects gnark v0.14.0 with this module: its circuits run as
// groth16.Circuit, with their hints and commitments, and its files (proving and
// verifying keys, proofs, witnesses, constraint systems) go in and out.
//
// Files are read from an io.ReaderAt of known size. Input is hostile: every
// length is checked against the file before anything is allocated or gnark sees
// a byte, points are checked on the curve and in the subgroup, and errors are
// *FormatError, which name file, section and offset. A file does not say which
// curve it is for; it is found out by trying, unless the caller says it.
//
// gnark logs through a global logger of its own, to standard output unless the
// program disables it (gnark/logger).
package gnark
