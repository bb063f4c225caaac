package cli

import (
	"strings"
	"testing"

	"greatminds/setup"
)

// The table is for a terminal: nothing of a program's own words reaches it as it is.
func TestTheTableOfAgentsIsReadableAndSafe(t *testing.T) {
	path, version, mode, why := "/bin/one", "1.2.3", "default", "it said \x1b[2J"
	text := agentTable(setup.AgentList{Version: 1, Agents: []setup.AgentPreset{
		{ID: "one", Title: "One", Installed: true, Path: &path, Answer: setup.Answer{Version: &version}, Asking: "in_mode", Mode: &mode,
			Login: setup.Login{Credentials: []string{"A_KEY", "B_KEY"}}, Notes: []string{"a note"}},
		{ID: "two", Title: "Two", Path: &path, Answer: setup.Answer{Unknown: &why}, Asking: "never"},
		{ID: "three", Title: "Three", Asking: "by_own_config", Install: "npm install three", Notes: []string{"not shown"}},
	}})
	want := []string{
		"AGENT  VERSION  ASKS FOR PERMISSIONS                 LOGIN           PROGRAM",
		"one    1.2.3    in mode default                      A_KEY or B_KEY  /bin/one",
		"two    unknown  never                                its own         /bin/one (not complete)",
		"three  -        where its own configuration says so  its own         not installed: npm install three",
		"", "One", "  a note", "", "Two", `  it said \x1b[2J`, "",
	}
	if got := strings.Split(text, "\n"); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got\n%s\nwant\n%s", text, strings.Join(want, "\n"))
	}
}
