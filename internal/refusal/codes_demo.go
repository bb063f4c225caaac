package refusal

// Codes of the demonstration.
const (
	// CodeDemoTool is a program that the demonstration needs and does not find.
	CodeDemoTool Code = "demo_tool_missing"
	// CodeDemoStuck is a demonstration whose task did not get to its end.
	CodeDemoStuck Code = "demo_stuck"
)

func init() {
	register([]Entry{
		{CodeDemoTool, Failed, "the demonstration needs a program that is not there"},
		{CodeDemoStuck, Failed, "the demonstration's task was held before it was merged"},
	})
}
