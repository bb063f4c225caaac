package mcp

import (
	"context"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// again answers a client that begins anew on the same pipes as it was answered first. The SDK would
// refuse it, and kimi-cli, which keeps one server for all of its connections, could call no tool.
func again(next sdk.MethodHandler) sdk.MethodHandler {
	var mu sync.Mutex // guards what follows
	var first sdk.Result
	begun := map[string]bool{}
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if method != "initialize" && method != "notifications/initialized" {
			return next(ctx, method, r)
		}
		mu.Lock()
		defer mu.Unlock()
		if begun[method] {
			if method == "initialize" {
				return first, nil
			}
			return nil, nil
		}
		result, err := next(ctx, method, r)
		if begun[method] = err == nil; begun[method] && method == "initialize" {
			first = result
		}
		return result, err
	}
}
