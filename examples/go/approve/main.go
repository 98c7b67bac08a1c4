// Asks a user to approve an action, and says whether it was signed, by REST alone: docs/approvals.md. It is a module
// approve, with proof.go as its package proof.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
	"approve/proof"
)

var orders = os.Getenv("SIGN_URL") + "/api/auth/cross-device"
var finalizeKey = secret()
var client = http.Client{
	Timeout:       35 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

type object = map[string]any

func secret() string {
	random := make([]byte, 32)
	rand.Read(random)
	return base64.RawURLEncoding.EncodeToString(random)
}

// written is the canonical form if all names are ASCII and all numbers are integers.
func written(value any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.Encode(value)
	return bytes.TrimSpace(text.Bytes())
}

func call(method, path, bearer string, body, answer any) error {
	var sent io.Reader
	if body != nil {
		sent = bytes.NewReader(written(body))
	}
	request, err := http.NewRequest(method, orders+path, sent)
	if err != nil {
		return err
	}
	request.Header = http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"},
		"Authorization": {"Bearer " + bearer}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the service refused: %s", response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// approved says whether the user has signed the action. Call it once for an action.
func approved(userID string, key []byte, title string, action object) (bool, error) {
	payload := written(object{"typ": "countersign/action", "action": action, "nonce": secret()})
	var order struct{ OrderID, DesktopToken, ApprovalURL string }
	start := object{"kind": "sign", "inboxUserId": userID, "displayTitle": title, "payload": string(payload),
		"requester": object{"origin": "https://app.example"}}
	if err := call("POST", "/start", os.Getenv("START_KEY"), start, &order); err != nil {
		return false, err
	}
	fmt.Println("Approve at", order.ApprovalURL)
	type event struct {
		Sequence int
		Status   string
	}
	for status, after := "", ""; status != "approved" && status != "finalized"; {
		var answer struct{ Events []event }
		if err := call("GET", "/events?orderId="+order.OrderID+after, order.DesktopToken, nil, &answer); err != nil {
			return false, err
		}
		for _, event := range answer.Events {
			status, after = event.Status, fmt.Sprint("&after=", event.Sequence)
		}
		if status == "rejected" || status == "cancelled" || status == "expired" {
			return false, nil
		}
	}
	var result struct{ ProofArtifact proof.Artifact }
	finalize := object{"orderId": order.OrderID, "desktopToken": order.DesktopToken, "finalizeKey": finalizeKey}
	if err := call("POST", "/finalize", "", finalize, &result); err != nil {
		return false, err
	}
	_, err := proof.Verify(result.ProofArtifact, proof.Expected{AppName: "Example", Origin: "https://app.example",
		AdapterID: "nimiq", PublicKey: key, Payload: string(payload)})
	return err == nil, err
}

func main() {
	// From your own records.
	key, _ := hex.DecodeString(os.Getenv("PUBLIC_KEY"))
	ok, err := approved(os.Getenv("USER_ID"), key, "Delete the archive", object{"tool": "delete", "name": "archive"})
	fmt.Println(ok, err)
}
