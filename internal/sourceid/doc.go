// Package sourceid computes identities: of a source tree, of an executable and of an environment.
//
// Two identities are equal when nothing differed that can change what a command does: the
// contents, permissions and names of the files, the targets of links, the commit. They say nothing
// about anything outside: installed packages, services, a remote stand.
//
// # The source identity
//
// In a Git work tree the files are those that `git ls-files --cached --others
// --exclude-standard` lists, so Git's ignore rules decide what is left out; anywhere else they are
// all files below the folder. Left out are always `.git` itself and what the caller excludes. The
// hash is the SHA-256 of a header and one line for each file, sorted by path:
//
//	gmsrc1\n
//	f MODE LENGTH:PATH SHA\n              a regular file; MODE is octal with setuid, setgid, sticky
//	l MODE LENGTH:PATH LENGTH:TARGET SHA\n a link to a file inside the tree, SHA of that file
//	d LENGTH:PATH LENGTH:TARGET\n          a link to nothing, inside the tree
//	m LENGTH:PATH\n                        tracked, but not there
//	s LENGTH:PATH COMMIT SHA\n             a Git work tree inside this one, with its own identity
//
// A link that leads outside the tree, or to a folder, is refused: what is behind it is no
// reproducible evidence. So is a tree that is too large, and a file that cannot be read.
package sourceid
