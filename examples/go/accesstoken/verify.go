// Package accesstoken verifies access tokens, as docs/access-tokens.md explains. No test runs it.
package accesstoken

import (
	"context"
	"errors"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
)

const (
	issuer   = "https://auth.example"
	audience = "https://orders.example"
)

// NewKeys is called once. It keeps the key set fresh until ctx is done.
func NewKeys(ctx context.Context) (keyfunc.Keyfunc, error) {
	return keyfunc.NewDefaultOverrideCtx(ctx, []string{issuer + "/.well-known/jwks.json"}, keyfunc.Override{
		RefreshInterval:  5 * time.Minute,
		RateLimitWaitMax: 2 * time.Second,
	})
}

// Verify returns the claims of a token that is valid for the audience.
func Verify(keys keyfunc.Keyfunc, text string) (jwt.MapClaims, error) {
	claims := jwt.MapClaims{}
	token, err := jwt.ParseWithClaims(text, claims, keys.Keyfunc,
		jwt.WithValidMethods([]string{"ES256"}),
		jwt.WithIssuer(issuer),
		jwt.WithAudience(audience),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(5*time.Second),
	)
	if err != nil {
		return nil, err
	}
	if token.Header["typ"] != "at+jwt" {
		return nil, errors.New("not an access token")
	}
	if claims["client_id"] != nil || claims["cnf"] != nil {
		return nil, errors.New("a client's token")
	}
	return claims, nil
}
