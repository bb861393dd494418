package spill

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// kinds of file systems by their magic number. Whatever is not listed is taken
// to be a local disk: overlays of containers among them.
var kinds = map[int64]kind{
	unix.TMPFS_MAGIC: memory, unix.RAMFS_MAGIC: memory, unix.HUGETLBFS_MAGIC: memory,
	unix.NFS_SUPER_MAGIC: remote, unix.SMB_SUPER_MAGIC: remote, unix.CIFS_SUPER_MAGIC: remote, unix.SMB2_SUPER_MAGIC: remote,
	unix.V9FS_MAGIC: remote, unix.CEPH_SUPER_MAGIC: remote, unix.AFS_SUPER_MAGIC: remote, unix.CODA_SUPER_MAGIC: remote,
	unix.FUSE_SUPER_MAGIC: remote,
	unix.PROC_SUPER_MAGIC: remote, unix.SYSFS_MAGIC: remote,
}

func diskOf(folder string) (disk, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return disk{}, err
	}
	d := disk{kind: local, free: math.MaxInt64}
	// The field's type differs between processors; the numbers have 32 bits.
	if k, ok := kinds[int64(uint32(s.Type))]; ok {
		d.kind = k
	}
	if size := uint64(s.Bsize); size > 0 && s.Bavail < math.MaxInt64/size {
		d.free = int64(s.Bavail * size)
	}
	return d, nil
}

// nameless makes a file that never has a name; an error where the file system
// cannot.
func nameless(folder string) (*os.File, error) {
	return os.OpenFile(folder, unix.O_TMPFILE|os.O_RDWR|os.O_EXCL, 0o600)
}
