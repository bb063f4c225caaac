package refusal

// Codes of commands and of the identities that their receipts hold.
const (
	// CodeSourceTree is a source tree without a reproducible identity.
	CodeSourceTree Code = "source_identity"
	// CodeCommandRole is a command asked for by a role that its configuration does not list.
	CodeCommandRole Code = "command_role"
	// CodeCommandAuthorization is a deployment or publication that the project does not authorize.
	CodeCommandAuthorization Code = "command_not_authorized"
	// CodeCommandEnvironment is a command that lacks a variable it requires.
	CodeCommandEnvironment Code = "command_environment"
	// CodeCommandFolder is a working folder that is missing or leads out of the workspace.
	CodeCommandFolder Code = "command_folder"
	// CodeCommandOutput is a captured output that is not what its receipt says.
	CodeCommandOutput Code = "command_output"
	// CodeCommandProcess is a process of an earlier daemon's command that cannot be ended.
	CodeCommandProcess Code = "command_process"
	// CodeEvidenceKey is an evidence key that is missing, malformed or readable by others.
	CodeEvidenceKey Code = "evidence_key"
)

func init() {
	register([]Entry{
		{CodeSourceTree, Invalid, "the source tree has no reproducible identity"},
		{CodeCommandRole, Forbidden, "the command may not be requested by this role"},
		{CodeCommandAuthorization, Invalid, "the project does not authorize this deployment or publication"},
		{CodeCommandEnvironment, Invalid, "a variable that the command requires is not set for the daemon"},
		{CodeCommandFolder, Invalid, "the command's working folder is missing or leads out of the workspace"},
		{CodeCommandOutput, Storage, "a captured output is missing or was changed"},
		{CodeCommandProcess, Storage, "a process of a command cannot be ended, or its state is not known"},
		{CodeEvidenceKey, Storage, "the key of the environment identities is missing, malformed or readable by others"},
	})
}
