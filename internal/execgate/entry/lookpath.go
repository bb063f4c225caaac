package entry

import "syscall"

const accessExecute = 1 // X_OK

// LookPath finds the file that argv[0] names, as execvp does it in the child: a name with a
// slash stands for itself, seen from dir; any other is searched in the PATH of the child's own
// environment. A candidate that exists but may not be executed makes the answer EACCES.
func LookPath(name, dir string, env []string) (string, syscall.Errno) {
	if indexByte(name, '/') >= 0 {
		return seenFrom(dir, name), 0
	}
	fault := syscall.ENOENT
	for rest, more := pathOf(env), true; more; {
		var folder string
		folder, rest, more = cutColon(rest)
		if folder == "" {
			folder = "."
		}
		file := seenFrom(dir, folder+"/"+name)
		var st syscall.Stat_t
		if syscall.Stat(file, &st) != nil || st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
			continue
		}
		if syscall.Access(file, accessExecute) == nil {
			return file, 0
		}
		fault = syscall.EACCES
	}
	return name, fault
}

func cutColon(list string) (first, rest string, more bool) {
	if i := indexByte(list, ':'); i >= 0 {
		return list[:i], list[i+1:], true
	}
	return list, "", false
}

func seenFrom(dir, name string) string {
	if dir == "" || name[0] == '/' {
		return name
	}
	return dir + "/" + name
}

// defaultPath is searched where the child has no PATH, as execvp does.
const defaultPath = "/bin:/usr/bin"

// pathOf returns the first PATH, the one that getenv in the child will see.
func pathOf(env []string) string {
	for _, entry := range env {
		if value, ok := cutPrefix(entry, "PATH="); ok {
			return value
		}
	}
	return defaultPath
}
