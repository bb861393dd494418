package sniff

// NativeMagic begins a key file of this module's own.
const NativeMagic = "SNRKLNK\n"
