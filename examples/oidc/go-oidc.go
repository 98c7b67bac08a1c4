// An application that signs users in with go-oidc 2.1. Redirect URI: /callback. Asks for your scopes; an e-mail
// address is optional. No PKCE: the client has "pkce": "optional".
package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"

	oidc "github.com/coreos/go-oidc"
	"golang.org/x/oauth2"
)

func random() string {
	bytes := make([]byte, 32)
	if _, err := rand.Read(bytes); err != nil {
		log.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(bytes)
}

func main() {
	provider, err := oidc.NewProvider(context.Background(), os.Getenv("ISSUER"))
	if err != nil {
		log.Fatal(err)
	}
	config := oauth2.Config{
		ClientID:     os.Getenv("CLIENT_ID"),
		ClientSecret: os.Getenv("CLIENT_SECRET"),
		Endpoint:     provider.Endpoint(),
		RedirectURL:  os.Getenv("APP_URL") + "/callback",
		Scopes:       []string{oidc.ScopeOpenID, "profile", "email"},
	}
	if scope := os.Getenv("SCOPE"); scope != "" {
		config.Scopes = strings.Fields(scope)
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: config.ClientID})
	// By the value of a cookie.
	var users sync.Map

	set := func(w http.ResponseWriter, name, value string) {
		http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, Secure: true})
	}
	cookie := func(r *http.Request, name string) string {
		if found, err := r.Cookie(name); err == nil {
			return found.Value
		}
		return ""
	}
	http.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		state, nonce := random(), random()
		set(w, "state", state)
		set(w, "nonce", nonce)
		http.Redirect(w, r, config.AuthCodeURL(state, oidc.Nonce(nonce)), http.StatusFound)
	})
	http.HandleFunc("/callback", func(w http.ResponseWriter, r *http.Request) {
		if state := cookie(r, "state"); state == "" || r.URL.Query().Get("state") != state {
			http.Error(w, "another state", http.StatusBadRequest)
			return
		}
		token, err := config.Exchange(r.Context(), r.URL.Query().Get("code"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		raw, _ := token.Extra("id_token").(string)
		idToken, err := verifier.Verify(r.Context(), raw)
		if err != nil || idToken.Nonce != cookie(r, "nonce") {
			http.Error(w, "the ID token is not good", http.StatusBadGateway)
			return
		}
		userInfo, err := provider.UserInfo(r.Context(), oauth2.StaticTokenSource(token))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		var claims struct {
			Groups []string `json:"groups"`
		}
		if err := userInfo.Claims(&claims); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		user := map[string]any{"sub": idToken.Subject}
		if claims.Groups != nil {
			user["groups"] = claims.Groups
		}
		if userInfo.Email != "" {
			user["email"] = userInfo.Email
		}
		session := random()
		users.Store(session, user)
		set(w, "session", session)
		http.Redirect(w, r, "/", http.StatusFound)
	})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		user, _ := users.Load(cookie(r, "session"))
		json.NewEncoder(w).Encode(user)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
