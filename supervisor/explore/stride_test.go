//go:build !race

package explore

// stride 1 tries every moment.
const stride = 1
