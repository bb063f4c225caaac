package contract

// nearest returns the name that a misspelt word most likely means, "" when none is near.
func nearest(word string, names []string) string {
	best, distance := "", 3
	if len(word) > 80 {
		return ""
	}
	for _, name := range names {
		if d := edits(word, name); d < distance && d < len(name)/2+1 {
			best, distance = name, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two short words, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = min(diagonal, row[j], row[j-1]) + 1
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
