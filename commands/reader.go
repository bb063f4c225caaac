package commands

import "greatminds/runstore"

// Reader shows the captured output of receipts to a reader of the project's files, which has no
// store and runs nothing.
type Reader struct {
	// Dir is the folder of the durable store.
	Dir string
}

// Preview is that of a [Service]: bounded, and only of files that are what the receipt says.
func (r Reader) Preview(c *runstore.Command, limit int) (any, error) {
	return (&Service{o: Options{Dir: r.Dir}}).Preview(c, limit)
}
