package gnark

import (
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/spill"
)

// Temp says where a key's points lie while it is open. gnark's files hold them
// in another form than the one they are used in, so that the files themselves
// cannot be mapped. The zero value has the points in buffers, which stay in
// memory for as long as the key is open. With folders they are written, while
// they are read, to a temporary file in the first that takes it, and mapped from
// there as those of a .slk are: a proof then keeps about one query of the key
// in memory. The file has no name, takes as much of the disk as the points would
// of memory, is not forced onto the disk, and is gone when the key is closed or
// the process ends in whatever way.
//
// Where no folder takes the file, or its disk fills up meanwhile, the points go
// to buffers.
type Temp struct {
	// Folders are tried in order. A folder in memory (tmpfs) is refused, and so
	// is one with too little free space.
	Folders []string
	// Careful is for folders that the user did not name: refused are also those
	// not known to be on a disk of this machine, and a file that takes more than
	// a quarter of the free space.
	Careful bool
	// Told, if set, hears once where the points are: a folder and the size of the
	// file in bytes, or an empty name and why no folder took them. It hears
	// nothing of a key below 4 MiB, which is in buffers always, nor without folders.
	Told func(folder string, size int64, err error)

	from int64 // bytes of points from which a file is made; 0: tempFrom
}

// AutoTemp is a careful choice of folders: $TMPDIR if that is set, else
// /var/tmp and /tmp.
func AutoTemp() Temp { return Temp{Folders: spill.Folders(), Careful: true} }

const (
	tempFrom  = 4 << 20  // a smaller key is no burden
	spillFrom = 64 << 10 // bytes of a vector; smaller ones are not worth a mapping each
)

func (t *Temp) tell(folder string, size int64, err error) {
	if t.Told != nil {
		t.Told(folder, size, err)
	}
}

// spill makes the file for points of about size bytes, if one is wanted and a
// folder takes it.
func (b *builder) spill(t *Temp, size int64) {
	from := t.from
	if from == 0 {
		from = tempFrom
	}
	if len(t.Folders) == 0 || size < from {
		return
	}
	b.least = min(from, spillFrom)
	var why error
	for _, folder := range t.Folders {
		f, err := spill.Create(folder, size, t.Careful)
		if err == nil {
			b.file = f
			return
		}
		if why == nil {
			why = err
		} else {
			why = fmt.Errorf("%w; %w", why, err)
		}
	}
	t.tell("", 0, why)
}

// ended closes the file: the mappings do without.
func (b *builder) ended() {
	if b.file != nil {
		_ = b.file.Close() // its bytes were read back, and nobody else wants them
	}
}

// rest takes the pages of p out of memory if they are mapped.
func (b *builder) rest(p curve.Points) {
	for _, m := range b.maps {
		if m.Rest(p.Data) == nil {
			return
		}
	}
}

// place is where a vector of points goes: memory, or a part of a file.
type place struct {
	id     curve.ID
	group  curve.Group
	n      int
	memory []byte      // of all points; nil: they go to the file
	file   *spill.File // nil: they go to memory
	off    int64       // in the file
}

// place finds room for n points.
func (b *builder) place(id curve.ID, g curve.Group, n int) (*place, error) {
	p := &place{id: id, group: g, n: n}
	if size := int64(n) * int64(p.size()); b.file != nil && size > 0 && size >= b.least {
		p.file, p.off = b.file, b.file.Reserve(size)
		return p, nil
	}
	v, err := b.points(id, g, n)
	p.memory = v.Data
	return p, err
}

// size is that of a point in memory.
func (p *place) size() int { return p.id.PointBytes(p.group) }

// window is how many points are put at a time: what is written at once decides
// how large the pages are that the system keeps it in. 6 MiB are a whole number
// of points of any size, and of spill's blocks.
func (p *place) window() int {
	if p.file == nil {
		return max(p.n, 1)
	}
	return 3 * spill.Block / p.size()
}

// put brings points that begin with the from-th to where they belong.
func (p *place) put(points []byte, from int) error {
	if p.file == nil {
		return nil
	}
	return p.file.WriteAt(points, p.off+int64(from)*int64(p.size()))
}

// settle is the vector when all of it was put.
func (b *builder) settle(p *place) (curve.Points, error) {
	v := curve.Points{Curve: p.id, Group: p.group, Data: p.memory}
	if p.file == nil {
		return v, nil
	}
	m, err := p.file.Map(b.sc, p.off, int64(p.n)*int64(p.size()))
	if err != nil {
		return v, err
	}
	b.refs, b.maps = append(b.refs, alloc.Ref(m)), append(b.maps, m)
	v.Data = m.Data()
	return v, nil
}
