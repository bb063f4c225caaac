package refusal

// Codes of git: worktrees and merges of verified work.
const (
	// CodeGitMissing is a machine without a git program on the search path.
	CodeGitMissing Code = "git_missing"
	// CodeGitTooOld is a git without the calls that merges are computed with.
	CodeGitTooOld Code = "git_too_old"
	// CodeGitFailed is a git call that ended with an error we have no better name for.
	CodeGitFailed Code = "git_failed"
	// CodeGitTimeout is a git call, filter or hook that did not end within its bound.
	CodeGitTimeout Code = "git_timeout"
	// CodeGitIndexLocked is an index.lock in the way of a write.
	CodeGitIndexLocked Code = "git_index_locked"
	// CodeGitLocked is another lock file of git's in the way of a write: of a ref, say.
	CodeGitLocked Code = "git_locked"
	// CodeNotARepository is a project folder outside every git repository.
	CodeNotARepository Code = "not_a_repository"
	// CodeDefaultBranchMissing is a default branch that has no commit.
	CodeDefaultBranchMissing Code = "default_branch_missing"
	// CodeBaseCommitUnknown is a plan's base_commit that the repository does not hold.
	CodeBaseCommitUnknown Code = "base_commit_unknown"
	// CodeBranchCheckedOut is a task branch that another checkout holds.
	CodeBranchCheckedOut Code = "branch_checked_out"
	// CodeWorktreePath is something else than a folder where a worktree belongs.
	CodeWorktreePath Code = "worktree_path"
	// CodeWorktreeWithoutGit is a folder where a worktree belongs, without a .git of its own.
	CodeWorktreeWithoutGit Code = "worktree_without_git"
	// CodeWorktreeForeign is a worktree that belongs to another repository.
	CodeWorktreeForeign Code = "worktree_foreign"
	// CodeWorktreeBranch is a task's worktree that is on another branch.
	CodeWorktreeBranch Code = "worktree_branch"
	// CodeWorktreeUnfinished is a worktree whose first checkout was cut short.
	CodeWorktreeUnfinished Code = "worktree_unfinished"
	// CodeWorktreeLocked is a worktree that somebody locked with git worktree lock.
	CodeWorktreeLocked Code = "worktree_locked"
	// CodeWorktreeChanged is a worktree that changed after its contents were merged.
	CodeWorktreeChanged Code = "worktree_changed"
	// CodeWorkspaceMissing is a configured workspace that is no folder.
	CodeWorkspaceMissing Code = "workspace_missing"
	// CodeWorkspaceOutside is a configured workspace outside the task's worktree.
	CodeWorkspaceOutside Code = "workspace_outside"
	// CodeHookFailed is a git hook that refused or failed.
	CodeHookFailed Code = "git_hook_failed"
	// CodeSigningFailed is a commit that could not be signed although commit.gpgSign asks for it.
	CodeSigningFailed Code = "git_signing_failed"
	// CodeMergeBusy is a checkout with a merge, rebase, bisect or the like under way.
	CodeMergeBusy Code = "merge_busy"
	// CodeMergeBranchMissing is a verified task without a branch to merge.
	CodeMergeBranchMissing Code = "merge_branch_missing"
	// CodeMergeConflict is a merge that git cannot make by itself.
	CodeMergeConflict Code = "merge_conflict"
	// CodeMergeNested is a repository inside a task's worktree.
	CodeMergeNested Code = "merge_nested_repository"
	// CodeMergeSubmodule is a merge that changes a submodule.
	CodeMergeSubmodule Code = "merge_submodule"
	// CodeMergeStrategy is a merge strategy that is not supported.
	CodeMergeStrategy Code = "merge_strategy"
	// CodeCheckoutOverlap is a checkout whose own files are in the merge's way.
	CodeCheckoutOverlap Code = "checkout_overlap"
	// CodeCheckoutUncertain is a checkout cut short between two commits that holds something else.
	CodeCheckoutUncertain Code = "checkout_uncertain"
	// CodeBranchMoved is a branch that moved between planning a merge and making it.
	CodeBranchMoved Code = "branch_moved"
)

func init() {
	register([]Entry{
		{CodeGitMissing, Failed, "no git program on the search path"},
		{CodeGitTooOld, Failed, "git is older than 2.38"},
		{CodeGitFailed, Storage, "a git call failed"},
		{CodeGitTimeout, Storage, "a git call, one of its filters or a hook did not end within its bound"},
		{CodeGitIndexLocked, Storage, "an index.lock of git is in the way"},
		{CodeGitLocked, Storage, "a lock file of git is in the way"},
		{CodeNotARepository, Failed, "the project folder is in no git repository"},
		{CodeDefaultBranchMissing, Storage, "the default branch does not exist or has no commit"},
		{CodeBaseCommitUnknown, Storage, "the repository does not hold the plan's base commit"},
		{CodeBranchCheckedOut, Storage, "the task branch is checked out elsewhere"},
		{CodeWorktreePath, Storage, "something else than a folder stands where the task's worktree belongs"},
		{CodeWorktreeWithoutGit, Storage, "the folder of the task's worktree is no git worktree"},
		{CodeWorktreeForeign, Storage, "the folder of the task's worktree belongs to another repository"},
		{CodeWorktreeBranch, Storage, "the task's worktree is on another branch"},
		{CodeWorktreeUnfinished, Storage, "the first checkout of the task's worktree was cut short"},
		{CodeWorktreeLocked, Storage, "the task's worktree is locked"},
		{CodeWorktreeChanged, Storage, "the task's worktree changed after it was merged"},
		{CodeWorkspaceMissing, Invalid, "the configured workspace is no folder"},
		{CodeWorkspaceOutside, Invalid, "the configured workspace lies outside the task's worktree"},
		{CodeHookFailed, Storage, "a git hook refused or failed"},
		{CodeSigningFailed, Storage, "a commit could not be signed"},
		{CodeMergeBusy, Storage, "a merge, rebase, bisect or the like is under way in a checkout"},
		{CodeMergeBranchMissing, Storage, "the task has no branch to merge"},
		{CodeMergeConflict, Forbidden, "the merge has conflicts"},
		{CodeMergeNested, Storage, "a repository inside the task's worktree cannot be merged"},
		{CodeMergeSubmodule, Storage, "the merge changes a submodule"},
		{CodeMergeStrategy, Invalid, "the merge strategy is not supported"},
		{CodeCheckoutOverlap, Storage, "files in a checkout of the default branch are in the merge's way"},
		{CodeCheckoutUncertain, Storage, "a checkout was cut short and holds contents of neither side"},
		{CodeBranchMoved, Storage, "a branch moved between planning a merge and making it"},
	})
}
