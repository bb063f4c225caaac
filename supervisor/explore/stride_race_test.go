//go:build race

package explore

// stride is the distance of the moments that are tried. Under the race detector it is the detector
// that matters; everything is tried without it.
const stride = 16
