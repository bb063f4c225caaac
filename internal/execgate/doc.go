// Package execgate starts every process of the project and ends its whole tree again.
package execgate
