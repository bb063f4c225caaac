package main

// anthropic is the environment of both releases of the claude adapter.
var anthropic = map[string]string{"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": "%U", "CLAUDE_CONFIG_DIR": "%H/.claude",
	"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1"}

// codexConfig is the configuration of both releases of codex. The model's name matters: codex offers
// its tools by what it knows of the model.
func codexConfig(model string) string {
	return `model = "` + model + `"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "%U/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
request_max_retries = 2
stream_max_retries = 2
`
}

// nodeRecipes need Node 22 or newer.
var nodeRecipes = []recipe{
	{
		name: "claude-new", packages: []string{"@agentclientprotocol/claude-agent-acp@0.101.0"}, node24: true,
		interpreter: "%N", program: "%I/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js",
		env: anthropic, mode: "default",
		set:  setting{"sonnet", "acceptEdits", "claude-sonnet-5-5"},
		note: "asks in mode default alone: its own is auto; a child process for each session",
	},
	{
		name: "codex-new", packages: []string{"@agentclientprotocol/codex-acp@2.6.0"}, node24: true,
		interpreter: "%N", program: "%I/node_modules/@agentclientprotocol/codex-acp/dist/index.js",
		env:   map[string]string{"CODEX_HOME": "%H/.codex", "MOCK_KEY": key, "NO_BROWSER": "1"},
		files: map[string]string{".codex/config.toml": codexConfig("gpt-5.5")},
		mode:  "read-only",
		set:   setting{"gpt-5.6-sol", "workspace-write", "gpt-5.6-sol"},
		note:  "asks in mode read-only: its own, agent, does not inside the workspace; brings its sandbox along",
	},
	{
		name: "qwen", packages: []string{"@qwen-code/qwen-code@0.24.4"}, node24: true,
		interpreter: "%N", program: "%I/node_modules/@qwen-code/qwen-code/cli.js", args: []string{"--acp"},
		env: map[string]string{"OPENAI_API_KEY": key, "OPENAI_BASE_URL": "%U/v1", "OPENAI_MODEL": "mock-model"},
		files: map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}},
"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"disableAutoUpdate":true}}`},
		auth: "openai", mode: "default",
		set:  setting{"$runtime|openai|mock-model(openai)", "yolo", "mock-model"},
		note: "asks in mode default: in its own, auto, a model decides; a wrapper process with a worker",
	},
	{
		name: "pi", packages: []string{"pi-acp@0.0.34", "@earendil-works/pi-coding-agent@0.87.1"}, node24: true,
		interpreter: "%N", program: "%I/node_modules/pi-acp/dist/index.js",
		env: map[string]string{"PI_CODING_AGENT_DIR": "%H/.pi/agent", "PI_ACP_PI_COMMAND": "%I/node_modules/.bin/pi", "PI_OFFLINE": "1"},
		files: map[string]string{
			".pi/agent/models.json": `{"providers":{"mock":{"baseUrl":"%U/v1","apiKey":"` + key + `","api":"openai-completions",
"models":[{"id":"mock-model","name":"Mock","reasoning":false,"input":["text"],"contextWindow":200000,"maxTokens":8000,
"cost":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0}}]}}}`,
			".pi/agent/settings.json": `{"defaultProvider":"mock","defaultModel":"mock-model","quietStartup":true}`,
		},
		silent: true,
		set:    setting{"mock/mock-model", "", "mock-model"},
		note:   "never asks for a permission; a child process for each session",
	},
}
