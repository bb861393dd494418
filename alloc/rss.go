package alloc

// RSS is the resident memory of the process now and at its peak, in bytes. See
// ResidentNow for its parts.
func RSS() (current, peak int64, err error) {
	r, err := ResidentNow()
	return r.Current, r.Peak, err
}
