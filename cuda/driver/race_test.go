//go:build race

package driver

const raceOn = true
