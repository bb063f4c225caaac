package refusal

// Codes of the room setup.
const (
	// CodeSetupInsideWorktree is a setup inside .worktrees.
	CodeSetupInsideWorktree Code = "setup_inside_worktree"
	// CodeSetupDetached is a repository whose default branch cannot be told.
	CodeSetupDetached Code = "setup_detached_head"
	// CodeSetupDiffers is a contract that would replace a different one.
	CodeSetupDiffers Code = "setup_contract_differs"
	// CodeSetupOrphanState is runtime state whose contract is gone.
	CodeSetupOrphanState Code = "setup_state_without_contract"
	// CodeSetupOldLayout is task data in coordination/.
	CodeSetupOldLayout Code = "setup_task_data_in_coordination"
	// CodeSetupEdit is an existing file that setup cannot add its lines to.
	CodeSetupEdit Code = "setup_cannot_edit"
	// CodeSetupWrite is a file or folder that setup could not write.
	CodeSetupWrite Code = "setup_write_failed"
	// CodeSetupBusy is another setup under way in the same project.
	CodeSetupBusy Code = "setup_busy"
	// CodePresetUnknown is a preset that does not exist.
	CodePresetUnknown Code = "preset_unknown"
	// CodePresetAgent is a preset for an agent without a manifest.
	CodePresetAgent Code = "preset_agent_unknown"
	// CodePresetBindings is a preset that would replace bindings.
	CodePresetBindings Code = "preset_bindings_exist"
	// CodeAgentUnknown is an agent that there is no preset for.
	CodeAgentUnknown Code = "agent_unknown"
	// CodeAgentMissing is an agent that is not installed.
	CodeAgentMissing Code = "agent_not_installed"
	// CodeAgentExists is a manifest that would overwrite another one.
	CodeAgentExists Code = "agent_exists"
	// CodePresetUnset is a preset applied to a folder that was never set up.
	CodePresetUnset Code = "preset_not_set_up"
)

func init() {
	register([]Entry{
		{CodeSetupInsideWorktree, Invalid, "the folder is a task's worktree, a copy of a project and no project"},
		{CodeSetupDetached, Invalid, "the repository has no origin/HEAD and no branch is checked out, so its default branch is unknown"},
		{CodeSetupDiffers, Invalid, "the project has another execution contract than the supplied one"},
		{CodeSetupOrphanState, Invalid, "the project has runtime state, but its execution contract is gone"},
		{CodeSetupOldLayout, Invalid, "task data sits in coordination, where the old layout kept it"},
		{CodeSetupEdit, Invalid, "an existing file is written in a way that lines cannot be added to safely"},
		{CodeSetupWrite, Storage, "a file or folder of the project could not be written"},
		{CodeSetupBusy, Storage, "another setup is at work in the project"},
		{CodePresetUnknown, Invalid, "there is no preset of this name"},
		{CodePresetAgent, Invalid, "the contract has no manifest for the named agent"},
		{CodePresetBindings, Invalid, "the contract has bindings that the preset would replace"},
		{CodeAgentUnknown, Invalid, "there is no preset for an agent of this name"},
		{CodeAgentMissing, Failed, "the agent, or a program that it starts, is not on PATH"},
		{CodeAgentExists, Invalid, "the contract has a manifest of this name already"},
		{CodePresetUnset, Invalid, "the project has not been set up"},
	})
}
