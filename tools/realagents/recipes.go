package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// key is the made-up credential that every agent gets; the stand-in asks for none.
const key = "sk-sample-not-a-key"

// recipe says how one real agent is installed and started against the stand-in.
//
// In interpreter, program, args and the values of env and files, %I is the install folder, %H the
// agent's own HOME, %U the stand-in's address, %N the program of Node 24 and %A the processor as
// npm packages name it.
type recipe struct {
	name string
	// packages are pinned by version: npm's, or PyPI's where python is set.
	packages []string
	// python are the versions of Python that will do, as 3.13, the best first; empty for npm's packages.
	python []string
	// node24 says that the agent needs a newer Node than the one that may be installed: it gets
	// Node 24 from npm, as does npm itself, which takes an old release of an agent under an old Node.
	node24 bool
	// interpreter runs the program: an absolute path, or a name looked up in PATH; empty for a
	// program that runs by itself.
	interpreter string
	// program is the installed file that is the agent, args what follows it.
	program string
	args    []string
	env     map[string]string
	// files are the agent's own configuration, by their paths below HOME.
	files map[string]string
	// auth is the authentication method to select, empty for none.
	auth string
	// mode is the session mode in which the agent asks for permissions; empty where it does so
	// by default.
	mode string
	// set are a model and a mode that it offers, other than its defaults where there are others.
	set setting
	// silent agents never ask for a permission, in no mode.
	silent bool
	// helper is a program on PATH that the agent makes use of, with how to get it; empty for none.
	helper, remedy string
	// note says what is special, for the table.
	note string
}

// setting is what a binding sets of a session; empty leaves the agent's default.
type setting struct {
	model, mode string
	// wire is the model's name as the agent then sends it.
	wire string
}

// recipes are the agents that are known to work, the lightest first: by the time from an empty
// cache to the merge, and by what runs meanwhile.
var recipes = slices.Concat(plainRecipes, nodeRecipes, pythonRecipes)

// plainRecipes run by themselves or on the Node that is installed.
var plainRecipes = []recipe{
	{
		name: "codex", packages: []string{"@zed-industries/codex-acp@0.16.0"},
		program: "%I/node_modules/@zed-industries/codex-acp-linux-%A/bin/codex-acp",
		env:     map[string]string{"CODEX_HOME": "%H/.codex", "MOCK_KEY": key, "NO_BROWSER": "1"},
		files:   map[string]string{".codex/config.toml": codexConfig("gpt-5.2")},
		helper:  "bwrap", remedy: "Debian: apt-get install bubblewrap; for its shell sandbox",
		set:  setting{"gpt-5.4", "auto", "gpt-5.4"},
		note: "native program; each shell command asks to leave the agent's own sandbox",
	},
	{
		name: "gemini", packages: []string{"@google/gemini-cli@0.61.0"},
		interpreter: "node", program: "%I/node_modules/@google/gemini-cli/bundle/gemini.js", args: []string{"--acp"},
		env: map[string]string{"GEMINI_API_KEY": key, "GOOGLE_GEMINI_BASE_URL": "%U", "GEMINI_CLI_TRUST_WORKSPACE": "true",
			"NO_BROWSER": "true", "GEMINI_CLI_NO_RELAUNCH": "true"},
		files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},
"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},
"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false}}`},
		auth: "gemini-api-key",
		set:  setting{"gemini-2.5-pro", "plan", ""},
		note: "on Node 20 or newer; authenticates by method; one more model request a turn to choose a model",
	},
	{
		name: "claude", packages: []string{"@zed-industries/claude-agent-acp@0.23.1"},
		interpreter: "node", program: "%I/node_modules/@zed-industries/claude-agent-acp/dist/index.js",
		env:  anthropic,
		set:  setting{"opus[1m]", "acceptEdits", "claude-opus-4-6"},
		note: "on Node 20 or newer; a child process for each session; does not exit at the end of its input",
	},
	{
		name: "opencode", packages: []string{"opencode-ai@1.18.33"},
		program: "%I/node_modules/opencode-linux-%A/bin/opencode", args: []string{"acp"},
		env: map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"},
		files: map[string]string{".config/opencode/opencode.json": `{"model":"mock/mock-model","small_model":"mock/mock-model",
"autoupdate":false,"share":"disabled","permission":{"edit":"ask","bash":"ask"},
"provider":{"mock":{"npm":"@ai-sdk/openai-compatible","name":"Mock","options":{"baseURL":"%U/v1","apiKey":"` + key + `"},
"models":{"mock-model":{"name":"Mock","limit":{"context":200000,"output":8000},"tool_call":true}}}}}`},
		set:  setting{"mock/mock-model", "plan", "mock-model"},
		note: "native program; one more model request a session for a title",
	},
}

func find(name string) (recipe, error) {
	var known []string
	for _, r := range recipes {
		if r.name == name {
			return r, nil
		}
		known = append(known, r.name)
	}
	return recipe{}, fmt.Errorf("no agent named %q; known are %s", name, strings.Join(known, ", "))
}

// lacks names the agent's helper when it is in no folder of the path.
func (r recipe) lacks(path string) string {
	if r.helper == "" {
		return ""
	}
	for _, dir := range filepath.SplitList(path) {
		if info, err := os.Stat(filepath.Join(dir, r.helper)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return ""
		}
	}
	return r.helper + " (" + r.remedy + ")"
}

// place is where one launch stands.
type place struct {
	install, home, model string
	// node is the program of Node 24; empty for an agent that does without.
	node string
	// path is the PATH of the agent and of all that it starts.
	path string
}

func (p place) fill(text string) string {
	processor := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if processor == "" {
		processor = runtime.GOARCH
	}
	return strings.NewReplacer("%I", p.install, "%H", p.home, "%U", p.model, "%N", p.node, "%A", processor).Replace(text)
}

// launch writes the agent's own configuration and returns its argv and environment, which is
// built from nothing: no key of this machine can reach the agent.
func (r recipe) launch(p place) (argv []string, env map[string]string, err error) {
	for name, text := range r.files {
		file := filepath.Join(p.home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, nil, err
		}
		// They name a credential, made up as it is.
		if err := os.WriteFile(file, []byte(p.fill(text)), 0o600); err != nil {
			return nil, nil, err
		}
	}
	if r.interpreter != "" {
		argv = append(argv, p.fill(r.interpreter))
	}
	for _, word := range append([]string{r.program}, r.args...) {
		argv = append(argv, p.fill(word))
	}
	path := p.path
	if r.node24 {
		// What the agent starts by itself looks for node there.
		path = filepath.Dir(p.node) + string(os.PathListSeparator) + path
	}
	env = map[string]string{"HOME": p.home, "PATH": path, "TERM": "dumb", "LANG": "C.UTF-8",
		"TMPDIR": filepath.Join(p.home, "tmp"), "NO_PROXY": "127.0.0.1,localhost"}
	for name, value := range r.env {
		env[name] = p.fill(value)
	}
	return argv, env, os.MkdirAll(env["TMPDIR"], 0o700)
}
