// Package proof verifies proof artifacts of the adapters nimiq and ed25519, as docs/proofs.md explains.
package proof

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Artifact is the signed part of a proof artifact, and what is needed to check it.
type Artifact struct {
	Message      string `json:"message"`
	SignatureHex string `json:"signatureHex"`
	AdapterID    string `json:"adapterId"`
	PublicKeyHex string `json:"publicKeyHex"`
}

// Expected is what the application knows. PublicKey is the owner's, 32 bytes, and never taken from an artifact. Payload is
// in its canonical form; if it is empty, PayloadHash counts.
type Expected struct {
	AppName, Origin, AdapterID, Payload, PayloadHash string
	PublicKey                                        ed25519.PublicKey
	NotBefore                                        time.Time
}

var required = []string{"Action", "Origin", "Challenge ID", "Nonce", "Issued At", "Expires At", "Order ID", "Kind"}
var optional = []string{"Code", "Payload Hash", "Payload", "Title", "Summary"}

// Verify returns the lines of the text if the owner of the key signed it.
func Verify(artifact Artifact, expected Expected) (map[string]string, error) {
	owner := hex.EncodeToString(expected.PublicKey)
	if artifact.AdapterID != expected.AdapterID || !strings.EqualFold(artifact.PublicKeyHex, owner) {
		return nil, errors.New("another wallet")
	}
	signed, err := signedBytes(artifact.AdapterID, artifact.Message)
	if err != nil {
		return nil, err
	}
	signature, err := hex.DecodeString(artifact.SignatureHex)
	if err != nil || !ed25519.Verify(expected.PublicKey, signed, signature) {
		return nil, errors.New("signature")
	}
	heading, lines, err := read(artifact.Message)
	if err != nil {
		return nil, err
	}
	if heading != expected.AppName+" requests approval" || lines["Origin"] != expected.Origin {
		return nil, errors.New("application")
	}
	if err := checkPayload(lines, expected); err != nil {
		return nil, err
	}
	issued, err := time.Parse("2006-01-02T15:04:05.000Z", lines["Issued At"])
	if err != nil || issued.Before(expected.NotBefore) {
		return nil, errors.New("too old")
	}
	return lines, nil
}

// checkPayload makes the line Payload anew: a wallet may have shown nothing else of the payload.
func checkPayload(lines map[string]string, expected Expected) error {
	hash := expected.PayloadHash
	if expected.Payload != "" {
		hash = hashOf(expected.Payload)
	}
	line := lines["Payload"]
	differs := line != "" && (hashOf(line) != hash || lineOf(line) != line)
	isOther := expected.Payload != "" && line != lineOf(expected.Payload)
	if lines["Payload Hash"] != hash || differs || isOther {
		return errors.New("payload")
	}
	return nil
}

func hashOf(payload string) string {
	digest := sha256.Sum256([]byte(payload))
	return "sha256:" + base64.RawURLEncoding.EncodeToString(digest[:])
}

// lineOf returns what the line Payload says of a payload in its canonical form, which is nothing if it does not fit.
func lineOf(payload string) string {
	other := func(r rune) bool { return r != ' ' && unicode.IsSpace(r) }
	if len(payload) > 400 || strings.Contains(payload, "  ") || strings.IndexFunc(payload, other) != -1 {
		return ""
	}
	return payload
}

// signedBytes returns the bytes that a wallet signs for a text.
func signedBytes(adapterID, message string) ([]byte, error) {
	switch adapterID {
	case "ed25519":
		return []byte(message), nil
	case "nimiq":
		framed := fmt.Sprintf("\x16Nimiq Signed Message:\n%d%s", len(message), message)
		digest := sha256.Sum256([]byte(framed))
		return digest[:], nil
	}
	return nil, errors.New("adapter")
}

// read returns the first line, and the others by name. Each stands once, in any order.
func read(message string) (string, map[string]string, error) {
	if strings.IndexFunc(message, isForbidden) != -1 {
		return "", nil, errors.New("text")
	}
	known := map[string]bool{}
	for _, name := range append(append([]string{}, required...), optional...) {
		known[name] = true
	}
	rest := strings.Split(message, "\n")
	lines := map[string]string{}
	for _, line := range rest[1:] {
		name, value, _ := strings.Cut(line, ": ")
		if _, twice := lines[name]; twice || !known[name] || value == "" {
			return "", nil, errors.New("line")
		}
		lines[name] = value
	}
	for _, name := range required {
		if lines[name] == "" {
			return "", nil, errors.New("line")
		}
	}
	if lines["Action"] != "order.approve" || lines["Kind"] != "sign" {
		return "", nil, errors.New("kind of text")
	}
	return rest[0], lines, nil
}

// isForbidden tells control characters but the line feed, line separators, and what changes the direction of text.
func isForbidden(r rune) bool {
	return r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control))
}
