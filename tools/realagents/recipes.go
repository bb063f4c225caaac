package main

import (
	"os"
	"path/filepath"
	"strings"
)

// key is the made-up credential that every agent gets; the stand-in asks for none.
const key = "sk-sample-not-a-key"

// recipe says how one real agent is installed and started against the stand-in.
type recipe struct {
	name string
	// packages are npm packages by pinned version.
	packages []string
	// node is true for agents that need a Node runtime of at least version 22.
	node bool
	// argv, env and files describe a launch; %I is the install folder, %H the agent's own HOME,
	// %U the stand-in's address. Files lie below HOME.
	argv  []string
	env   map[string]string
	files map[string]string
	// auth is the authentication method to select, mode the mode in which the agent asks.
	auth, mode string
	// why names what is known to differ, for the table.
	why string
}

// recipes are the agents that are known to work, the lightest first.
var recipes = []recipe{
	{
		name: "opencode", packages: []string{"opencode-ai@1.18.33"},
		argv: []string{"%I/node_modules/opencode-linux-x64/bin/opencode", "acp"},
		env:  map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"},
		files: map[string]string{".config/opencode/opencode.json": `{"model":"mock/mock-model","small_model":"mock/mock-model",
"autoupdate":false,"share":"disabled","permission":{"edit":"ask","bash":"ask"},
"provider":{"mock":{"npm":"@ai-sdk/openai-compatible","name":"Mock","options":{"baseURL":"%U/v1","apiKey":"` + key + `"},
"models":{"mock-model":{"name":"Mock","limit":{"context":200000,"output":8000},"tool_call":true}}}}}`},
	},
	{
		name: "gemini", packages: []string{"@google/gemini-cli@0.61.0"},
		argv: []string{"node", "%I/node_modules/@google/gemini-cli/bundle/gemini.js", "--acp"},
		env: map[string]string{"GEMINI_API_KEY": key, "GOOGLE_GEMINI_BASE_URL": "%U", "GEMINI_CLI_TRUST_WORKSPACE": "true",
			"NO_BROWSER": "true", "GEMINI_CLI_NO_RELAUNCH": "true"},
		files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},
"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false}}`},
		auth: "gemini-api-key",
	},
	{
		name: "codex", packages: []string{"@zed-industries/codex-acp@0.16.0"},
		argv: []string{"%I/node_modules/@zed-industries/codex-acp-linux-x64/bin/codex-acp"},
		env:  map[string]string{"CODEX_HOME": "%H/.codex", "MOCK_KEY": key, "NO_BROWSER": "1"},
		files: map[string]string{".codex/config.toml": "model = \"gpt-5.2\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"mock\"\n" +
			"base_url = \"%U/v1\"\nenv_key = \"MOCK_KEY\"\nwire_api = \"responses\"\nrequest_max_retries = 2\nstream_max_retries = 2\n"},
		why: "its shell tool is sandboxed; the stand-in asks to leave the sandbox, which asks the operator",
	},
}

func find(name string) (recipe, bool) {
	for _, r := range recipes {
		if r.name == name {
			return r, true
		}
	}
	return recipe{}, false
}

// launch writes the agent's own configuration and returns its argv and environment, which is
// built from nothing: no key of this machine can reach the agent.
func (r recipe) launch(install, home, model, path string) ([]string, map[string]string, error) {
	place := strings.NewReplacer("%I", install, "%H", home, "%U", model)
	for name, text := range r.files {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, nil, err
		}
		if err := os.WriteFile(file, []byte(place.Replace(text)), 0o600); err != nil {
			return nil, nil, err
		}
	}
	argv := make([]string, len(r.argv))
	for i, word := range r.argv {
		argv[i] = place.Replace(word)
	}
	env := map[string]string{"HOME": home, "PATH": path, "TERM": "dumb", "LANG": "C.UTF-8", "TMPDIR": filepath.Join(home, "tmp"),
		"NO_PROXY": "127.0.0.1,localhost"}
	for name, value := range r.env {
		env[name] = place.Replace(value)
	}
	return argv, env, os.MkdirAll(env["TMPDIR"], 0o700)
}
