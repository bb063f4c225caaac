package refusal

// Codes of the room contract.
const (
	// CodeContractInvalid is an execution contract with faults; all of them are listed.
	CodeContractInvalid Code = "contract_invalid"
	// CodeContractMissing is a configuration file that does not exist.
	CodeContractMissing Code = "contract_missing"
	// CodeContractUnreadable is a configuration file that cannot be read.
	CodeContractUnreadable Code = "contract_unreadable"
	// CodeContractPinned is a pinned contract in the store that is malformed.
	CodeContractPinned Code = "contract_pinned_malformed"
	// CodeSchemaInvalid is a workflow schema with faults; all of them are listed.
	CodeSchemaInvalid Code = "schema_invalid"
	// CodeSchemaMissing is GREATMINDS_CANON_DIR without a readable schema.yaml.
	CodeSchemaMissing Code = "schema_missing"
	// CodeCoordInvalid is a coordination/coord.yaml with faults.
	CodeCoordInvalid Code = "coord_invalid"
	// CodeProjectMissing is a folder outside any project.
	CodeProjectMissing Code = "project_missing"
)

func init() {
	register([]Entry{
		{CodeContractInvalid, Invalid, "the execution contract has faults, each listed with its line"},
		{CodeContractMissing, Invalid, "a configuration file does not exist"},
		{CodeContractUnreadable, Invalid, "a configuration file cannot be read"},
		{CodeContractPinned, Storage, "a contract pinned in the store is malformed"},
		{CodeSchemaInvalid, Invalid, "the workflow schema has faults, each listed with its line"},
		{CodeSchemaMissing, Failed, "GREATMINDS_CANON_DIR holds no readable schema.yaml"},
		{CodeCoordInvalid, Invalid, "coordination/coord.yaml has faults, each listed with its line"},
		{CodeProjectMissing, Failed, "the folder belongs to no project"},
	})
}
