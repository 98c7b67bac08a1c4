"""An application of Django 3.2 that signs users in with social-auth 4.3.

Redirect URI: /complete/oidc/. Asks for openid profile email; an e-mail address is optional. No PKCE: the client has
"pkce": "optional". SECURE_PROXY_SSL_HEADER is for an application behind a proxy. For groups, SOCIAL_AUTH_OIDC_SCOPE,
_EXTRA_DATA and SOCIAL_AUTH_PROTECTED_USER_FIELDS are all ['groups']: without the last, Django answers 500.
"""

import os

import django
from django.conf import settings
from django.core.management import call_command
from django.http import JsonResponse
from django.urls import include, path

settings.configure(
    ALLOWED_HOSTS=['app.example'],
    AUTHENTICATION_BACKENDS=['social_core.backends.open_id_connect.OpenIdConnectAuth'],
    DATABASES={'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': 'users.db'}},
    DEFAULT_AUTO_FIELD='django.db.models.AutoField',
    INSTALLED_APPS=['django.contrib.auth', 'django.contrib.contenttypes', 'django.contrib.sessions', 'social_django'],
    LOGIN_REDIRECT_URL='/',
    MIDDLEWARE=[
        'django.contrib.sessions.middleware.SessionMiddleware',
        'django.contrib.auth.middleware.AuthenticationMiddleware',
    ],
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.environ['APP_SECRET'],
    SECURE_PROXY_SSL_HEADER=('HTTP_X_FORWARDED_PROTO', 'https'),
    SOCIAL_AUTH_OIDC_OIDC_ENDPOINT=os.environ['ISSUER'],
    SOCIAL_AUTH_OIDC_KEY=os.environ['CLIENT_ID'],
    SOCIAL_AUTH_OIDC_SECRET=os.environ['CLIENT_SECRET'],
    SOCIAL_AUTH_OIDC_SCOPE=['groups'] if 'SCOPE' in os.environ else [],
    SOCIAL_AUTH_OIDC_EXTRA_DATA=['groups'],
    # Django's user has a field of this name, for something else.
    SOCIAL_AUTH_PROTECTED_USER_FIELDS=['groups'],
)
django.setup()


def home(request):
    if not request.user.is_authenticated:
        return JsonResponse({})
    account = request.user.social_auth.get(provider='oidc')
    claims = {'sub': account.uid, 'email': request.user.email, 'groups': account.extra_data.get('groups')}
    return JsonResponse({name: value for name, value in claims.items() if value})


urlpatterns = [path('', home), path('', include('social_django.urls', namespace='social'))]

call_command('migrate', verbosity=0)
call_command('runserver', '127.0.0.1:' + os.environ['PORT'], '--noreload', '--nothreading')
