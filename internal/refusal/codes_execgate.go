package refusal

// Codes of internal/execgate.
const (
	// CodeKernelTooOld is a Linux below the floor.
	CodeKernelTooOld Code = "kernel_too_old"
	// CodePidfdUnavailable is a kernel or a sandbox without process file descriptors.
	CodePidfdUnavailable Code = "pidfd_unavailable"
	// CodeProcUnavailable is a /proc that is missing or hides processes from us.
	CodeProcUnavailable Code = "proc_unavailable"
)

func init() {
	register([]Entry{
		{CodeKernelTooOld, Failed, "the Linux kernel is older than 5.4"},
		{CodePidfdUnavailable, Failed, "processes cannot be held by file descriptor here (pidfd_open is refused)"},
		{CodeProcUnavailable, Failed, "/proc is missing, or hides what must be read to end processes safely"},
	})
}
