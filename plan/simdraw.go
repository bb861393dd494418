package plan

import "math"

// What is drawn depends on the seed, the item, the node and the place of the draw,
// and on nothing that happened before: an item costs the same under whatever
// settings it runs, so that two settings are compared on the same work.

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// dice is a number that looks random, made of four.
func dice(seed uint64, item, node, place int) uint64 {
	return mix(mix(seed^mix(uint64(item)<<32|uint64(uint32(node)))) + uint64(place))
}

// unit is a number in [0, 1).
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// lognormal is the factor, of mean 1, whose logarithm has the standard deviation
// sigma.
func lognormal(x uint64, sigma float64) float64 {
	u, v := 1-unit(x), unit(mix(x))
	z := math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
	return math.Exp(sigma*z - sigma*sigma/2)
}
