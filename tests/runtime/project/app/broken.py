import os

import no_such_package
