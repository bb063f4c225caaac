package contract

// Role is a role of the workflow schema, such as DEVELOPER.
type Role string

// Queue is a queue of the workflow schema, such as feature_dev.
type Queue string

// BlockKind is the kind of a block in a task file, such as implementation.
type BlockKind string

// Contract is the whole execution contract of a project, with every default filled in.
// It is immutable once parsed. Spec: "Execution contract and durable run store".
type Contract struct {
	// Version is 1, the only one there is. Not part of the fingerprint.
	Version int
	// MaxRunning bounds the active runs of the whole project.
	MaxRunning int
	// AccountLimits bounds the active runs of each named account; sorted by name.
	// An account that is not listed is bounded by MaxRunning alone.
	AccountLimits []AccountLimit
	// AccountRetryInitialSeconds is the first backoff of an account, in seconds.
	AccountRetryInitialSeconds int
	// AccountRetryMaxSeconds is the longest backoff of an account, in seconds.
	AccountRetryMaxSeconds int
	// MaxRuntimeEvents bounds the retained tail of runtime events (100 to 1000000).
	MaxRuntimeEvents int
	// Agents, Bindings and Commands stand in the order of the file.
	Agents   []Agent
	Bindings []Binding
	Commands []Command
	// Stand is nil when the contract does not configure a stand.
	Stand *Stand
}

// AccountLimit is one entry of account_limits.
type AccountLimit struct {
	Account string
	// MaxRunning is at least 1.
	MaxRunning int
}

// Agent is an agent manifest: how one ACP executable is started. It names no role.
type Agent struct {
	ID string
	// Argv reaches exec literally: no splitting, no expansion, no shell. Never empty.
	Argv []string
	// AdapterVersion and HarnessVersion are labels of intent, never verified.
	AdapterVersion, HarnessVersion string
	// Environment names the variables that are passed on; sorted by child name.
	Environment []EnvRef
	// RequiredEnv names variables without which the agent is not started.
	RequiredEnv []string
	// RequiredCapabilities and OptionalCapabilities are dotted paths into what the agent
	// announces at initialize.
	RequiredCapabilities, OptionalCapabilities []string
	// AuthMethod is the ACP authentication method to use, nil for none.
	AuthMethod *string
	// AccountLimitErrors maps the agent's own error codes to account holds; at most 16.
	AccountLimitErrors []AccountLimitError
	// MCPServers are passed to every session of the agent, in the order of the file; nil for none.
	MCPServers []MCPServer
	// SupervisorTools says how the agent reaches the supervisor; ToolsBoth unless set.
	SupervisorTools SupervisorTools
}

// EnvRef passes the variable Parent of the daemon's environment on as Child.
type EnvRef struct{ Child, Parent string }

// AccountLimitError says that the agent's JSON-RPC error Code means a limit of its account.
type AccountLimitError struct {
	// Code is a 32-bit integer outside -32768..-32000, unique within its agent.
	Code int
	// Kind is LimitRate or LimitQuota.
	Kind string
	// CooldownSeconds is 1 to 86400 for LimitRate and nil for LimitQuota.
	CooldownSeconds *int
}

// Kinds of an account limit.
const (
	LimitRate  = "rate_limit"
	LimitQuota = "quota_exhausted"
)

// Binding puts an agent to work in a role.
type Binding struct {
	ID    string
	Role  Role
	Agent string
	// Workspace is a trusted local path, absolute or relative to the project; as typed.
	// It must exist when a run is claimed.
	Workspace string
	// Scheduling is SchedulingQueue or SchedulingOnDemand.
	Scheduling string
	// Permission is PermissionAsk, PermissionDeny or PermissionAllowWorkspace.
	Permission string
	// Session is SessionNew or SessionResume.
	Session string
	// Model, Mode and Reasoning are asked of the agent and confirmed; nil leaves its default.
	Model, Mode, Reasoning *string
	// Account groups bindings that share one provider account.
	Account string
	// MaxRunning bounds the active runs of this binding.
	MaxRunning int
	// TimeoutSeconds bounds each prompt turn of its runs, in seconds.
	TimeoutSeconds int
	// IdleTimeoutSeconds bounds how long an agent may say nothing during a prompt turn, in seconds;
	// nil for no limit. It is below TimeoutSeconds. Ours alone: it enters the fingerprint only when set.
	IdleTimeoutSeconds *int
	// MaxPromptBytes bounds one prompt, MaxSessionInputBytes all prompts of a session, in bytes.
	MaxPromptBytes, MaxSessionInputBytes int
	// MaxReportedSessionCost ends a session whose reported cost passes it; nil for no limit.
	// ReportedCostCurrency (three capital letters) is set exactly when it is.
	MaxReportedSessionCost *Number
	ReportedCostCurrency   *string
	// MaxNoProgressTurns bounds completed turns without a transition (1 to 20).
	MaxNoProgressTurns int
	// MaxStartupRetries bounds retries of a failed start (0 to 20).
	MaxStartupRetries int
	// RetryInitialSeconds and RetryMaxSeconds bound the backoff between them, in seconds.
	RetryInitialSeconds, RetryMaxSeconds int
}

// Values of a binding's scheduling, permission and session.
const (
	SchedulingQueue          = "queue"
	SchedulingOnDemand       = "on-demand"
	PermissionAsk            = "ask"
	PermissionDeny           = "deny"
	PermissionAllowWorkspace = "allow-workspace"
	SessionNew               = "new"
	SessionResume            = "resume-if-compatible"
)

// Command is a configured command that agents in its roles may request by id.
type Command struct {
	ID string
	// Argv reaches exec literally. Never empty.
	Argv []string
	// Roles may request the command. Never empty.
	Roles []Role
	// Cwd is relative to the run's workspace and does not leave it; as typed.
	Cwd string
	// TimeoutSeconds bounds the command, in seconds.
	TimeoutSeconds int
	// MaxOutputBytes bounds what is stored of each output stream, in bytes.
	MaxOutputBytes int
	// Environment and RequiredEnv are as for an agent.
	Environment []EnvRef
	RequiredEnv []string
	// EnvironmentRevision is the operator's own label of what the command depends on.
	EnvironmentRevision string
	// Purpose is PurposeValidation, PurposeDeployment or PurposePublication.
	Purpose string
	// Authorized is needed at request time for any purpose but validation.
	Authorized bool
}

// Purposes of a command.
const (
	PurposeValidation  = "validation"
	PurposeDeployment  = "deployment"
	PurposePublication = "publication"
)

// Stand configures automatic deployment of stand profiles.
type Stand struct {
	// Profiles are distinct; not empty when Authorized.
	Profiles   []string
	Authorized bool
	// TimeoutSeconds bounds one deployment, in seconds.
	TimeoutSeconds int
	// MaxOutputBytes bounds what is stored of each output stream (1 to 67108864 bytes).
	MaxOutputBytes      int
	EnvironmentRevision string
}

// Agent returns the manifest with this id.
func (c *Contract) Agent(id string) (Agent, bool) {
	for _, a := range c.Agents {
		if a.ID == id {
			return a, true
		}
	}
	return Agent{}, false
}

// Binding returns the binding with this id.
func (c *Contract) Binding(id string) (Binding, bool) {
	for _, b := range c.Bindings {
		if b.ID == id {
			return b, true
		}
	}
	return Binding{}, false
}

// Command returns the configured command with this id.
func (c *Contract) Command(id string) (Command, bool) {
	for _, k := range c.Commands {
		if k.ID == id {
			return k, true
		}
	}
	return Command{}, false
}

// AccountLimit returns the bound on the active runs of an account: its own entry, or the
// project's max_running where it has none.
func (c *Contract) AccountLimit(account string) int {
	for _, l := range c.AccountLimits {
		if l.Account == account {
			return l.MaxRunning
		}
	}
	return c.MaxRunning
}
