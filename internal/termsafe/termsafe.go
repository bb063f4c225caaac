// Package termsafe makes text from agents safe to show on a terminal.
//
// Control and format characters become visible escapes, so that no sequence of the agent's
// reaches the terminal, also when a character or sequence is cut between two chunks.
package termsafe
