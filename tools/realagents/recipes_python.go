package main

// pythonRecipes come from PyPI, each into a virtual environment of its own. Their programs run
// through the environment's interpreter, since it is moved after it is made.
var pythonRecipes = []recipe{
	{
		name: "vibe", packages: []string{"mistral-vibe==3.0.2"}, python: []string{"3.12", "3.13"},
		interpreter: "%I/bin/python", program: "%I/bin/vibe-acp",
		env: map[string]string{"VIBE_HOME": "%H/.vibe", "MOCK_KEY": key, "MISTRAL_API_KEY": key},
		files: map[string]string{".vibe/config.toml": `active_model = "mock"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false

[[providers]]
name = "mock"
api_base = "%U/v1"
api_key_env_var = "MOCK_KEY"
api_style = "openai"
backend = "generic"

[[models]]
name = "mock-model"
provider = "mock"
alias = "mock"
input_price = 1.0
output_price = 2.0
`},
		mode: "ask",
		set:  setting{"mock", "auto-approve", "mock-model"},
		note: "asks in mode ask: its own, accept-edits, does not for writing",
	},
	{
		name: "kimi", packages: []string{"kimi-cli==1.40.0"}, python: []string{"3.13"},
		interpreter: "%I/bin/python", program: "%I/bin/kimi", args: []string{"acp"},
		env: map[string]string{"KIMI_CLI_NO_AUTO_UPDATE": "1"},
		files: map[string]string{
			".kimi/config.toml": `default_model = "mock"

[providers.mock]
type = "openai_legacy"
base_url = "%U/v1"
api_key = "` + key + `"

[models.mock]
provider = "mock"
model = "mock-model"
max_context_size = 200000
`,
			// It only looks whether there is one.
			".kimi/credentials/kimi-code.json": `{"access_token":"` + key + `","refresh_token":"","expires_at":0,"scope":"mock","token_type":"Bearer","expires_in":0}`,
		},
		set:  setting{"mock", "default", ""},
		note: "gives its tool calls no kind; asks by default; newer releases are empty",
	},
}
