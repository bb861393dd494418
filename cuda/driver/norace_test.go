//go:build !race

package driver

const raceOn = false
