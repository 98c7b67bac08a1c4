// golang.org/x/oauth2 from version 0.12 polls by itself. The nightly tests run this with the package of
// Debian's next release.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"golang.org/x/oauth2"
)

func main() {
	issuer := os.Getenv("ISSUER")
	if issuer == "" {
		issuer = "https://auth.example"
	}
	issuer += "/api/auth/oidc"
	config := &oauth2.Config{
		ClientID: "tulip-cli",
		Scopes:   []string{"openid", "profile", "offline_access"},
		Endpoint: oauth2.Endpoint{
			DeviceAuthURL: issuer + "/device/auth",
			TokenURL:      issuer + "/token",
			AuthStyle:     oauth2.AuthStyleInParams,
		},
	}
	ctx := context.Background()
	asked, err := config.DeviceAuth(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "Open %s and type %s\n", asked.VerificationURI, asked.UserCode)
	token, err := config.DeviceAccessToken(ctx, asked)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(token.Extra("id_token"))
}
