// Package session checks sessions with Countersign, as docs/backends.md explains.
package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Session says who calls.
type Session struct {
	ID        string `json:"id"`
	UserID    string `json:"userId"`
	AdapterID string `json:"adapterId"`
	Address   string `json:"address"`
	ExpiresAt int64  `json:"expiresAt,string"`
}

var client = &http.Client{Timeout: 5 * time.Second}

// SessionOf returns the session of a bearer token or, with the form "cookie", of a cookie's value; or nil.
// If it returns an error, that cannot be decided: answer 503 then.
func SessionOf(ctx context.Context, url, form, text string) (*Session, error) {
	body, err := json.Marshal(map[string]string{form: text})
	if err != nil {
		return nil, err
	}
	call := url + "/countersign.v1.SessionService/IntrospectSession"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, call, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("introspection: %s", response.Status)
	}
	var answer struct {
		Session *Session `json:"session"`
	}
	err = json.NewDecoder(response.Body).Decode(&answer)
	return answer.Session, err
}
